// How the interface is built: one page, hashed assets, nothing inlined (the content security policy allows only files of
// this server), and the licences of everything that is bundled in one file beside it.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const server = process.env.WEFT_URL ?? 'http://127.0.0.1:8765'

// Assets are kept compressed, as browsers get them (server/ui.py): compressing while one waits would cost more than it saves.
// Gzip alone: brotli is a seventh smaller, and each form adds one to three megabytes to what everyone installs.
// One packet takes what is smaller, compressed or not, and on disk each file takes 4 KB at least.
const PACKET = 1400
const compressed: Plugin = {
  name: 'weft-compressed',
  writeBundle(options, bundle) {
    for (const name of Object.keys(bundle).filter((name) => /^assets\/.*\.(js|css)$/.test(name))) {
      const path = join(options.dir!, name)
      const data = readFileSync(path)
      const packed = gzipSync(data, { level: 9 })
      if (data.length > PACKET && packed.length < data.length) {
        writeFileSync(`${path}.gz`, packed)
        rmSync(path)
      }
    }
  },
}

export default defineConfig({
  base: '/',
  plugins: [react(), compressed],
  build: {
    outDir: '../server/_web',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: 'es2022',
    // The page, and the small script of the server's own resume pages.
    rolldownOptions: { input: { index: 'index.html', resume: 'src/resume.ts' } },
    license: { fileName: 'third-party-licenses.md' },
  },
  worker: { format: 'es' },
  server: {
    proxy: Object.fromEntries(['/api', '/resume', '/login', '/static'].map((path) => [path, server])),
  },
})
