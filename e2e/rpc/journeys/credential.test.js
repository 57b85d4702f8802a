// Workers that sign for themselves: a public key is registered, tokens by its private half are good until it is revoked.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { adminKey, enqueue, refusal, speak, take, url, ways } from '../lib/world.js';

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

function base58(bytes) {
  let [number, digits] = [BigInt(`0x${Buffer.from(bytes).toString('hex')}`), ''];
  for (; number > 0n; number /= 58n) digits = ALPHABET[Number(number % 58n)] + digits;
  return '1'.repeat([...bytes].findIndex((byte) => byte !== 0)) + digits;
}

/** A key pair, and tokens by it. */
function signer() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const fingerprint = base58(createHash('sha256').update(publicKey.export({ type: 'spki', format: 'der' })).digest());
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return {
    fingerprint,
    pem: publicKey.export({ type: 'spki', format: 'pem' }),
    token: (claims = {}, key = privateKey) => {
      const now = Math.floor(Date.now() / 1000);
      const body = { iss: 'a worker', sub: 'a worker', aud: 'runvoy', iat: now, exp: now + 300, roles: ['admin'], ...claims };
      const text = `${part({ alg: 'ES256', typ: 'JWT', kid: fingerprint })}.${part(body)}`;
      return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
    },
  };
}

for (const way of ways) {
  const queue = `${way}-credential`;

  describe(way, () => {
    test('a token is as good as its registered key, and gives no rights but a worker s', async () => {
      const admin = speak(way, adminKey);
      const own = signer();
      const before = await refusal(take(speak(way, own.token()), queue));
      assert.equal(before.code, 'Unauthenticated');
      const name = `signer-${randomUUID().slice(0, 8)}`;
      const request = { name, publicKeyPem: own.pem, description: 'a signer' };
      const made = await admin.credentials.importCredential(request);
      assert.equal((await refusal(admin.credentials.importCredential(request))).code, 'AlreadyExists');
      assert.deepEqual([made.fingerprint, made.name], [own.fingerprint, name]);

      const worker = speak(way, own.token({ aud: url }));
      const { jobId } = await enqueue(admin, queue);
      const [{ job, taskToken }] = await take(worker, queue);
      assert.equal(job.jobId, jobId);
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      assert.equal((await refusal(enqueue(worker, queue))).code, 'PermissionDenied');

      const now = Math.floor(Date.now() / 1000);
      for (const [why, token] of Object.entries({
        'it has expired': own.token({ exp: now - 120 }),
        'it never ends': own.token({ exp: undefined }),
        'it is for somebody else': own.token({ aud: 'another server' }),
        'somebody else signed it': own.token({}, generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey),
      })) {
        assert.equal((await refusal(speak(way, token).jobs.updateJob({ taskToken }))).code, 'Unauthenticated', why);
      }

      const { credentials } = await admin.credentials.listCredentials({});
      const listed = credentials.find((credential) => credential.name === name);
      assert.deepEqual([listed.principalId, listed.fingerprint], [made.principalId, own.fingerprint]);
      await admin.credentials.revokeCredential({ principalId: made.principalId });
      assert.equal((await refusal(take(worker, queue))).code, 'Unauthenticated');
    });

    test('only admins register keys', async () => {
      const stranger = speak(way, process.env.RUNVOY_WORKER_KEY);
      assert.equal((await refusal(stranger.credentials.importCredential({ publicKeyPem: signer().pem }))).code, 'PermissionDenied');
      assert.equal((await refusal(speak(way, adminKey).credentials.importCredential({ publicKeyPem: 'nothing' }))).code, 'InvalidArgument');
    });
  });
}
