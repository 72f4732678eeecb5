// The same promises, with undici writing requests and reading responses (WEBHOOK_CLIENT=undici).
process.env.TEST_WEBHOOK_CLIENT = 'undici'

await import('./address-guard.test.ts')
await import('./client-certificates.test.ts')
await import('./closing.test.ts')
await import('./connection.test.ts')
await import('./deadline.test.ts')
await import('./floods.test.ts')
await import('./mixed-weather.test.ts')
await import('./moving-names.test.ts')
await import('./oauth.test.ts')
await import('./own-secrets.test.ts')
await import('./stray-answers.test.ts')
await import('./tls.test.ts')
await import('./transport.test.ts')
await import('./tunnel.test.ts')
await import('./ways-out.test.ts')
await import('./withdrawing.test.ts')
