// How the interface is built: one page, hashed assets, nothing inlined (the content security policy allows only files of
// this server), and the licences of everything that is bundled in one file beside it.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const server = process.env.WEFT_URL ?? 'http://127.0.0.1:8765'

export default defineConfig({
  base: '/',
  plugins: [react()],
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
