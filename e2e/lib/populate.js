// Test data of every kind, for the screenshots and the accessibility checks.

const COLOURS = String.raw`printf '\033[1mBuilding\033[0m 14 crates\n'
for i in 0 1 2 3 4 5 6 7; do printf "\033[3${'$'}{i}mcolour ${'$'}i\033[0m \033[9${'$'}{i}mbright ${'$'}i\033[0m \033[4${'$'}{i}m back \033[0m\n"; done
printf '\033[38;5;208m256 colours\033[0m \033[38;2;120;80;220mtrue colour\033[0m \033[3mitalic\033[0m \033[4munderlined\033[0m \033[7minverse\033[0m\n'
echo '::group::Install'; for i in 1 2 3 4; do echo "package ${'$'}i"; done; echo '::endgroup::'
for i in 10 40 70 100; do printf "\rprogress ${'$'}i%%"; done; echo
echo 'a warning on stderr' >&2
printf '\033]8;;https://example.com/report\033\\the report\033]8;;\033\\\n'`;

const JOB = {
  name: 'nightly release',
  concurrency: 3,
  tasks: [
    { taskId: 'checkout', command: 'echo commit 4be1' },
    { taskId: 'deps', command: 'echo 214 packages', dependsOn: ['checkout'] },
    { taskId: 'lint', command: 'echo clean', dependsOn: ['deps'] },
    { taskId: 'test-unit', command: 'for i in 1 2 3 4 5 6 7 8 9; do echo "ok $i - case $i"; done; echo "not ok 10 - totals" >&2; exit 1', retries: 0, dependsOn: ['deps'] },
    { taskId: 'test-web', command: 'echo 61 passed', dependsOn: ['deps'] },
    { taskId: 'build-amd64', command: 'echo built', dependsOn: ['deps'] },
    { taskId: 'build-arm64', name: 'build for the large arm64 machines', command: 'sleep 600', dependsOn: ['deps'] },
    { taskId: 'package', command: 'echo packed', dependsOn: ['lint', 'test-unit', 'test-web', 'build-amd64', 'build-arm64'] },
    { taskId: 'sign', command: 'echo signed', dependsOn: ['package'] },
    { taskId: 'publish', command: 'echo published', dependsOn: ['sign', 'checkout'], lock: 'release' },
    { taskId: 'announce', command: 'echo announced', dependsOn: ['publish'] },
  ],
};

/** Fills a server, and says where things are. */
export async function populate(server) {
  const people = [await server.user('ana@example.com', 'developer'), await server.user('ops@example.com', 'operator'), await server.user('vera@example.com', 'viewer')];
  await server.api('/users/create', { email: 'new@example.com', role: 'developer' });
  const [ana, ops] = people;
  const as = async (user, command, more = {}) => (await server.api('/run', { command, ...more }, { key: user.key })).execution_id;
  const secret = (name, key_name, description) => server.api('/secrets', { name, key_name, value: 'correct horse battery staple', description, use_by: ['role:developer'] });
  await secret('deploy-token', 'DEPLOY_TOKEN', 'Pushes releases');
  await secret('registry-password', 'REGISTRY_PASSWORD', 'Pulls private images');
  await server.api('/images/register', { image: 'hashicorp/terraform:1.9', cpu: 1024, memory: 2048 }).catch(() => undefined);
  for (let i = 1; i <= 12; i += 1) await as(i % 2 ? ana : ops, `make test SHARD=${i} >/dev/null 2>&1 || true`, i % 4 ? {} : { labels: { team: 'web', run: String(i) } });
  const dead = await as(ops, 'echo "dial tcp: connection refused" >&2; exit 1', { retries: 1, labels: { kind: 'import' } });
  const failed = await as(ana, "echo 'Terraform will perform the following actions:'; for i in $(seq 1 40); do echo \"  # aws_instance.web[$i] will be created\"; done; echo 'Error: creating EC2 Instance: UnauthorizedOperation' >&2; exit 3", { labels: { stack: 'terraform' } });
  await as(ops, 'sleep 30', { timeout: 1 });
  const stopped = await as(ops, 'sleep 900');
  await server.api(`/executions/${stopped}/kill`, {}, { key: ops.key });
  const colours = await as(ana, COLOURS);
  const running = await as(ops, 'i=0; while true; do i=$((i+1)); echo "$(date +%T) processed batch $i of 100000"; sleep 0.4; done', { lock: 'production' });
  const waiting = await as(ana, 'terraform apply -auto-approve', { lock: 'production', lock_wait: 3600 });
  const { jobId: job } = await server.api('/jobs', JOB);
  await server.api('/jobs', { name: 'hourly import', tasks: [{ taskId: 'load', command: 'true' }, { taskId: 'index', command: 'true', dependsOn: ['load'] }] });
  await server.ended(failed);
  await server.ended(dead);
  const { url: link } = await server.api(`/executions/${failed}/link`, {});
  return { people, failed, colours, running, waiting, stopped, job, link };
}
