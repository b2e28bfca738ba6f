// Runs scripts under the mounts that srt makes of a policy, without its network
// bridge, so that a test can ask thousands of questions. It reads one JSON
// object a line, {home, cwd, filesystem, script}, and answers each with a line,
// {status, stdout, stderr}. With {profile: true} it gives the profile for macOS
// instead; it also answers about hosts and patterns.
//
// usage: node oracle.mjs SRT_PACKAGE_DIRECTORY
import { createInterface } from 'node:readline';
import { spawnSync } from 'node:child_process';

const dist = `${process.argv[2]}/dist`;
const { SandboxManager } = await import(`${dist}/index.js`);
const linux = await import(`${dist}/sandbox/linux-sandbox-utils.js`);
const macos = await import(`${dist}/sandbox/macos-sandbox-utils.js`);
const utils = await import(`${dist}/sandbox/sandbox-utils.js`);
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

// The lists are prepared as sandbox-manager.js does where it runs on macOS.
function profile({ home, cwd, filesystem, allowPty }) {
  process.env.HOME = home;
  process.chdir(cwd);
  const strip = list => list.map(utils.removeTrailingGlobSuffix);
  const wrapped = macos.wrapCommandWithSandboxMacOS({
    command: 'true',
    needsNetworkRestriction: false,
    readConfig: { denyOnly: strip(filesystem.denyRead), allowWithinDeny: strip(filesystem.allowRead) },
    writeConfig: {
      allowOnly: [...utils.getDefaultWritePaths(filesystem), ...strip(filesystem.allowWrite)],
      denyWithinAllow: strip(filesystem.denyWrite),
    },
    allowPty,
  });
  const script = `args=(${wrapped}); for i in "${'${!args[@]}'}"; do [ "${'${args[i]}'}" = -p ] && printf %s "${'${args[i+1]}'}"; done`;
  return spawnSync('bash', ['-c', script], { encoding: 'utf8' });
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
  if (q.profile) answer = { status: 0, stdout: profile(q).stdout };
  else if (q.script !== undefined) answer = await run(q);
  else if (q.host !== undefined) answer = { status: reaches(q) ? 0 : 1 };
  else answer = { status: new RegExp(glob.globToRegex(q.glob), 's').test(q.path) ? 0 : 1 };
  process.stdout.write(JSON.stringify(answer) + '\n');
}
