import { createServer } from 'node:http'
import { randomUUID } from 'node:crypto'
import { Leaving, type Outage } from './outages.ts'

export const tokenClient = { id: 'the fault suite', secret: 'a secret of %the+client/=' }
/** Short, so that each forwarder renews its token many times in a run. */
export const tokenLifeMs = 20_000
/** Between a sender's last look at its token and the writing of the request, ms. */
const writtenWithinMs = 1_000

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)
const login = Buffer.from(`${formEncoded(tokenClient.id)}:${formEncoded(tokenClient.secret)}`).toString(
  'base64',
)

/** Gives tokens by the grant `client_credentials`. When it goes away, all that it gave are worth nothing any more. */
export class TokenEndpoint {
  readonly #givenAt = new Map<string, number>()
  readonly #revoked = new Set<string>()
  readonly #leaving: Leaving

  constructor() {
    const server = createServer((message, response) => {
      const chunks: Buffer[] = []
      message.on('data', (chunk: Buffer) => chunks.push(chunk))
      message.on('error', () => {})
      response.on('error', () => {})
      message.on('end', () => {
        if (this.#leaving.outage === 'hangs') return
        const asked = new URLSearchParams(Buffer.concat(chunks).toString())
        const isKnown =
          message.headers.authorization === `Basic ${login}` &&
          asked.get('grant_type') === 'client_credentials'
        const status = this.#leaving.outage === 'fails' ? 500 : isKnown ? 200 : 401
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(status === 200 ? this.#give() : { error: 'server_error' }))
      })
    })
    server.keepAliveTimeout = 60_000
    this.#leaving = new Leaving(server)
  }

  start(): Promise<number> {
    return this.#leaving.start()
  }

  become(outage: Outage | null): Promise<void> {
    if (outage !== null) for (const token of this.#givenAt.keys()) this.#revoked.add(token)
    return this.#leaving.become(outage)
  }

  isGood(authorization: string | undefined): boolean {
    const token = tokenIn(authorization)
    return this.#givenAt.has(token) && !this.#revoked.has(token)
  }

  /** What is wrong with a request of somebody who knows how long a token lives, sent at `sentAt` (epoch ms); null: nothing. */
  faultOf(authorization: string | undefined, sentAt: number): string | null {
    if (authorization === undefined) return 'no-token'
    const givenAt = this.#givenAt.get(tokenIn(authorization))
    if (givenAt === undefined) return 'unknown-token'
    return sentAt > givenAt + tokenLifeMs + writtenWithinMs ? 'token-that-has-ended' : null
  }

  #give(): object {
    const token = randomUUID()
    this.#givenAt.set(token, Date.now())
    return { access_token: token, token_type: 'Bearer', expires_in: tokenLifeMs / 1_000 }
  }
}

const tokenIn = (authorization = ''): string => authorization.replace(/^Bearer /, '')
