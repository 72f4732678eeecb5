import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { selfSigned } from '../secured/certificates.ts'

export interface TlsProxy {
  /** `https://localhost:<port>` */
  url: string
  /** `localhost:<port>` */
  host: string
  /** Whether it passes requests on; while it does not, it ends their connections. */
  isAway: boolean
  /** Requests that it has not passed on. */
  refused: number
}

/** What stands before a collector where it is used: TLS ends here, with a certificate that nobody trusts. */
export async function startTlsProxy(t: TestContext, { port }: { port: number }): Promise<TlsProxy> {
  const server = createServer(await selfSigned(), (incoming, outgoing) => {
    if (proxy.isAway) {
      proxy.refused++
      return void incoming.destroy()
    }
    const headers = { ...incoming.headers, 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' }
    const { method, url: path } = incoming
    const passed = request({ port, host: '127.0.0.1', method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => incoming.destroy())
    incoming.pipe(passed)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `localhost:${(server.address() as AddressInfo).port}`
  const proxy = { host, url: `https://${host}`, isAway: false, refused: 0 }
  return proxy
}
