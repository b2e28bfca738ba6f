// Runs scripts under the mounts that srt makes of a policy, without its network
// bridge, so that a test can ask thousands of questions. It reads one JSON
// object a line, {home, cwd, filesystem, script}, and answers each with a line,
// {status, stdout, stderr}.
//
// usage: node oracle.mjs SRT_PACKAGE_DIRECTORY
import { createInterface } from 'node:readline';
import { spawnSync } from 'node:child_process';

const dist = `${process.argv[2]}/dist`;
const { SandboxManager } = await import(`${dist}/index.js`);
const linux = await import(`${dist}/sandbox/linux-sandbox-utils.js`);
const domains = await import(`${dist}/sandbox/domain-pattern.js`);
const glob = await import(`${dist}/sandbox/glob-pattern.js`);
const { canonicalizeHost, isValidHost } = await import(`${dist}/sandbox/parent-proxy.js`);

async function run({ home, cwd, filesystem, script }) {
  process.env.HOME = home;
  process.chdir(cwd);
  SandboxManager.updateConfig({ network: { allowedDomains: [], deniedDomains: [] }, filesystem });
  try {
    const wrapped = await linux.wrapCommandWithSandboxLinux({
      command: script,
      needsNetworkRestriction: false,
      readConfig: SandboxManager.getFsReadConfig(),
      writeConfig: SandboxManager.getFsWriteConfig(),
      allowAllUnixSockets: true,
      binShell: 'bash',
    });
    const { status, stdout, stderr } = spawnSync('bash', ['-c', wrapped], { encoding: 'utf8' });
    return { status, stdout, stderr, wrapped };
  } finally {
    linux.cleanupBwrapMountPoints();
  }
}

// The proxy's decision, as sandbox-manager.js makes it.
function reaches({ allowed, denied, host, port }) {
  if (!isValidHost(host)) return false;
  const h = canonicalizeHost(host) ?? host;
  const matches = entry => domains.matchesDomainPatternWithPort(h, port, entry);
  return !denied.some(matches) && allowed.some(matches);
}

for await (const line of createInterface({ input: process.stdin })) {
  const q = JSON.parse(line);
  let answer;
  if (q.script !== undefined) answer = await run(q);
  else if (q.host !== undefined) answer = { status: reaches(q) ? 0 : 1 };
  else answer = { status: new RegExp(glob.globToRegex(q.glob), 's').test(q.path) ? 0 : 1 };
  process.stdout.write(JSON.stringify(answer) + '\n');
}
