// Runs the tests: bundles each test/*.test.ts with Vite (it is there anyway) and hands them to Node's test runner. Arguments go
// to the runner: `npm test -- --test-name-pattern=undo`. With --bench the measurements (test/*.bench.ts) instead.

import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const here = dirname(fileURLToPath(import.meta.url))
const bench = process.argv.includes('--bench')
const names = readdirSync(here).filter((name) => name.endsWith(bench ? '.bench.ts' : '.test.ts'))
const out = join(here, '..', 'node_modules', bench ? '.weft-bench' : '.weft-test')
rmSync(out, { recursive: true, force: true })
await build({
  configFile: false,
  root: join(here, '..'),
  logLevel: 'warn',
  ssr: { noExternal: true },
  build: {
    ssr: true,
    outDir: out,
    emptyOutDir: true,
    target: 'node20',
    minify: false,
    rollupOptions: {
      input: Object.fromEntries(names.map((name) => [name.slice(0, -3), join(here, name)])),
      output: { entryFileNames: '[name].mjs' },
    },
  },
})
const bundled = (name) => name.replace(/\.ts$/, '.mjs')
// Files that replace globals run in processes of their own. The others share one: to start Node takes longer than their tests.
const alone = names.filter((name) => bench || readFileSync(join(here, name), 'utf8').includes('globalThis'))
const shared = names.filter((name) => !alone.includes(name))
writeFileSync(join(out, 'shared.mjs'), shared.map((name) => `import './${bundled(name)}'\n`).join(''))
const files = [...alone.map(bundled), ...(bench ? [] : ['shared.mjs'])].map((name) => join(out, name))
const runner = bench ? [] : ['--test', '--test-reporter=spec', ...process.argv.slice(2)]
const { status } = spawnSync(process.execPath, [...runner, ...files], {
  stdio: 'inherit',
  env: { ...process.env, WEFT_WEB_ROOT: join(here, '..') },
})
process.exit(status ?? 1)
