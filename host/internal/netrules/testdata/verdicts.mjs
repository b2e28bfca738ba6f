// Loaded into srt's own Node ahead of srt, this asks srt's schema about each
// entry of the JSON list in the file VERDICTS_IN, prints the verdicts and ends the process.
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const cli = pathToFileURL(realpathSync(process.argv[1]))
const { SandboxRuntimeConfigSchema } = await import(new URL('sandbox/sandbox-config.js', cli))
const accepts = network =>
  SandboxRuntimeConfigSchema.safeParse({
    network: { allowedDomains: [], deniedDomains: [], ...network },
    filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
  }).success
const verdicts = JSON.parse(readFileSync(process.env.VERDICTS_IN)).map(entry => ({
  allow: accepts({ allowedDomains: [entry] }),
  deny: accepts({ deniedDomains: [entry] }),
}))
writeFileSync(1, JSON.stringify(verdicts))
process.exit(0)
