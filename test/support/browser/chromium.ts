// The browser of the tests: on Linux x64 the one that an npm package carries, elsewhere the installed Chrome.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { chromium, type Browser } from 'playwright-core'
import { root } from '../docs.ts'

export async function launchBrowser(): Promise<Browser> {
  // Chromium refuses to run as root in its sandbox; what it opens here is our own page.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return chromium.launch({ channel: 'chrome', args })
  const folder = await unpacked()
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    args: [...args, '--headless=shell', '--font-render-hinting=none', '--disable-gpu', '--no-zygote'],
    env: { ...process.env, FONTCONFIG_FILE: join(folder, 'fonts.conf') } as Record<string, string>,
  })
}

/** Unpacks the browser once for a checkout. Several test processes may do so at once; one of them is first. */
async function unpacked(): Promise<string> {
  const manifest = await readFile(join(root, 'node_modules/@sparticuz/chromium/package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  // Where it really lies: several checkouts can have one by a link, and some are taken away again.
  const cache = join(await realpath(join(root, 'node_modules')), '.cache')
  const folder = join(cache, `chromium-${version}`)
  if (existsSync(join(folder, 'chromium'))) {
    await nameFonts(folder)
    return folder
  }
  await mkdir(cache, { recursive: true })
  const temporary = await mkdtemp(join(cache, 'unpacking-'))
  try {
    // The package unpacks into the system's temporary folder only: a process with another one does it.
    const script = "(await import('@sparticuz/chromium')).default.executablePath()"
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      env: { ...process.env, TMPDIR: temporary },
    })
    await writeFile(join(temporary, 'fonts.conf'), fontsIn(folder))
    await rename(temporary, folder).catch(async (error: NodeJS.ErrnoException) => {
      if (existsSync(join(folder, 'chromium'))) return
      if (error.code !== 'ENOTEMPTY') throw error
      // `npm ci` took the browser away while it wrote its caches.
      await rm(folder, { recursive: true })
      await rename(temporary, folder)
    })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
  return folder
}

/** What was copied from elsewhere names the fonts that lie there: a page would be drawn with others. */
async function nameFonts(folder: string): Promise<void> {
  const file = join(folder, 'fonts.conf')
  if ((await readFile(file, 'utf8')) !== fontsIn(folder)) await writeFile(file, fontsIn(folder))
}

/** The package's own font, beside those of the machine. */
const fontsIn = (folder: string): string => `<?xml version="1.0"?>
<fontconfig>
  <dir>${folder}/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${folder}/fonts-cache</cachedir>
  <match target="pattern">
    <test name="family"><string>system-ui</string></test>
    <edit name="family" mode="assign" binding="strong"><string>Open Sans</string></edit>
  </match>
</fontconfig>
`
