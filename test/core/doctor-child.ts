import { loadConfig } from '../../core/config.ts'
import { examine, type Places } from '../../core/doctor/examine.ts'

// Looks as a user who may do nothing that is not granted to all, once everything is loaded; prints what is found as JSON.
const [data, places] = process.argv.slice(2) as [string, string]
const whole = loadConfig({ file: null, env: {}, flags: { data }, folder: '/' })
const config = { ...whole, cups: { url: 'ipp://127.0.0.1:1' } }
const NOBODY = 65_534
if (process.getuid?.() === 0) {
  process.setgroups?.([])
  process.setgid?.(NOBODY)
  process.setuid?.(NOBODY)
}
process.stdout.write(JSON.stringify(await examine(config, JSON.parse(places) as Places)))
