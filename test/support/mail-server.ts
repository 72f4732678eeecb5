// A real SMTP server, which a test can send away and bring back.
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { selfSigned, type ServerCertificate } from './secured/certificates.ts'

export const mailLogin = { user: 'post@rider', password: 'p:ss/word%' }

export interface TestMailServer {
  port: number
  /** For `openMailer`, and for MAIL_CA_FILE. */
  ca: string
  /** As they came: head and text. */
  mails: string[]
  /** To whom each went. */
  recipients: string[][]
  /** Refuses every connection, as if nothing ran there. */
  goAway(): Promise<void>
  comeBack(): Promise<void>
}

export interface MailServerOptions extends SMTPServerOptions {
  certificate?: ServerCertificate
}

export async function startMailServer(
  t: TestContext,
  { certificate, ...options }: MailServerOptions = {},
): Promise<TestMailServer> {
  const { cert, key } = certificate ?? (await selfSigned())
  const mails: string[] = []
  const recipients: string[][] = []
  const listen = (port: number) =>
    new Promise<SMTPServer>((resolve, reject) => {
      const server: SMTPServer = new SMTPServer({
        cert,
        key,
        logger: false,
        authOptional: false,
        closeTimeout: 100,
        onAuth({ username, password }, _, done) {
          if (username === mailLogin.user && password === mailLogin.password) done(null, { user: username })
          else done(new Error('wrong user or password'))
        },
        onRcptTo({ address }, _, done) {
          const refusal = Object.assign(new Error(`no such user ${address}`), { responseCode: 550 })
          done(address.startsWith('nobody') ? refusal : null)
        },
        onData(stream, { envelope }, done) {
          let text = ''
          stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
          stream.on('end', () => {
            mails.push(text)
            recipients.push(envelope.rcptTo.map(({ address }) => address))
            done(null, 'kept')
          })
        },
        ...options,
      })
      // A client that goes away is no matter of the test.
      server.on('error', () => {})
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => resolve(server))
    })
  const close = (server: SMTPServer) => new Promise<void>((resolve) => server.close(() => resolve()))
  let running: SMTPServer | null = await listen(0)
  const { port } = running.server.address() as AddressInfo
  const goAway = async () => {
    if (running) await close(running)
    running = null
  }
  t.after(goAway)
  return {
    port,
    ca: cert,
    mails,
    recipients,
    goAway,
    async comeBack() {
      running = await listen(port)
    },
  }
}
