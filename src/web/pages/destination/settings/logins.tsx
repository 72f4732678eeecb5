import { useState } from 'preact/hooks'
import { type ApiFailure, request } from '../../../api/request.ts'
import type { DestinationAnswer } from '../../../api/routes.ts'
import { ActionDialog } from '../../../components/dialog.tsx'
import { Checkbox, TextArea, TextField } from '../../../components/fields.tsx'
import { say } from '../../../components/notices.tsx'
import { linesOf } from '../../../components/options.ts'
import { faultsFor } from './form-fields.tsx'

/** What requests identify themselves with, as it is typed. An empty text gives nothing. */
export interface TypedLogins {
  clientCert: string
  clientKey: string
  ca: string
  oauthClientSecret: string
  /** One a line. */
  templateSecrets: string
}

export const noLogins: TypedLogins = {
  clientCert: '',
  clientKey: '',
  ca: '',
  oauthClientSecret: '',
  templateSecrets: '',
}

const names = Object.keys(noLogins) as (keyof TypedLogins)[]

/** Those that were typed, as the API takes them. */
export const givenLogins = (typed: TypedLogins): Record<string, string | Record<string, string>> =>
  Object.fromEntries(
    names
      .filter((name) => typed[name].trim() !== '')
      .map((name) => [name, name === 'templateSecrets' ? headersOf(typed[name]) : typed[name].trim()]),
  )

const kept = 'Kept encrypted and never shown again.'

interface LoginFieldsProps {
  typed: TypedLogins
  change: (edit: Partial<TypedLogins>) => void
  failure: ApiFailure | null
}

export function LoginFields({ typed, change, failure }: LoginFieldsProps) {
  return (
    <>
      <TextArea
        label="Client certificate"
        value={typed.clientCert}
        change={(clientCert) => change({ clientCert })}
        hint={`What requests identify themselves with over TLS: in PEM form, with those between it and its root. ${kept}`}
        fault={faultsFor(failure, 'clientCert')}
      />
      <TextArea
        label="Key of the client certificate"
        value={typed.clientKey}
        change={(clientKey) => change({ clientKey })}
        hint={`In PEM form, without a passphrase. ${kept}`}
        fault={faultsFor(failure, 'clientKey')}
      />
      <TextArea
        label="Own CA"
        value={typed.ca}
        change={(ca) => change({ ca })}
        hint="Authorities that requests trust beside all others: in PEM form."
        fault={faultsFor(failure, 'ca')}
      />
      <ClientSecretField
        value={typed.oauthClientSecret}
        change={(oauthClientSecret) => change({ oauthClientSecret })}
        hint={kept}
        fault={faultsFor(failure, 'oauthClientSecret')}
      />
      <TextArea
        label="Secrets of templates"
        value={typed.templateSecrets}
        change={(templateSecrets) => change({ templateSecrets })}
        hint={`One a line, as “key: text”: \${secret.key} in the body, a header or a URL stands for it. ${kept}`}
        fault={faultsFor(failure, 'templateSecrets')}
      />
    </>
  )
}

export const ClientSecretField = (given: {
  value: string
  change: (secret: string) => void
  hint: string
  fault?: string | undefined
}) => <TextField type="password" autocomplete="new-password" label="OAuth2 client secret" {...given} />

/** Headers from lines such as “X-Team: blue”. */
export const headersOf = (lines: string): Record<string, string> =>
  Object.fromEntries(
    linesOf(lines).map((line) => {
      const [name, ...value] = line.split(':')
      return [name!.trim(), value.join(':').trim()]
    }),
  )

export const headerHint =
  'A header a line, as “X-Team: blue”. Values are kept encrypted and never shown again.'

interface LoginsDialogProps {
  destination: DestinationAnswer
  /** For If-Match. */
  tag: string | null
  close: () => void
  saved: () => void
}

/** Sets and takes away what only fingerprints are shown of, the secret that signs aside. */
export function LoginsDialog({ close, saved, ...given }: LoginsDialogProps) {
  // As it was opened: what is typed is for these URLs, and is refused where somebody changed them meanwhile.
  const [{ destination, tag }] = useState(given)
  const { id, urls } = destination
  const [typed, setTyped] = useState(noLogins)
  const [lines, setLines] = useState(() => urls.map(() => ''))
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set())
  const turn = (what: string, isOn: boolean) =>
    setRemoved((before) => new Set(isOn ? [...before, what] : [...before].filter((each) => each !== what)))
  const removal = (what: string, label: string) => (
    <Checkbox key={what} label={label} checked={removed.has(what)} change={(isOn) => turn(what, isOn)} />
  )
  const headers = urls.map((url, index) => ({
    ...Object.fromEntries(
      url.headers.filter(({ name }) => removed.has(headerAt(index, name))).map(({ name }) => [name, null]),
    ),
    ...headersOf(lines[index]!),
  }))
  const logins = givenLogins(typed)
  const gone = destination.templateSecrets.filter(({ name }) => removed.has(templateSecret(name)))
  const body = {
    ...(headers.some((each) => Object.keys(each).length > 0) && {
      urls: urls.map(({ url }, index) => ({ url, headers: headers[index] })),
    }),
    ...(removed.has('clientCert') && { clientCert: null, clientKey: null }),
    ...(removed.has('ca') && { ca: null }),
    ...(removed.has('oauthClientSecret') && { oauthClientSecret: null }),
    ...logins,
    ...((gone.length > 0 || logins.templateSecrets) && {
      templateSecrets: {
        ...Object.fromEntries(gone.map(({ name }) => [name, null])),
        ...(logins.templateSecrets as Record<string, string> | undefined),
      },
    }),
  }
  const act = async () => {
    await request('PATCH /destinations/{id}', {
      id,
      body,
      headers: tag === null ? {} : { 'If-Match': tag },
    })
    say(`${id} is saved`)
    saved()
  }
  return (
    <ActionDialog
      title={`Headers and login of ${id}`}
      action={`Save ${id}`}
      isPossible={Object.keys(body).length > 0}
      act={act}
      close={close}
    >
      <p>What stays empty stays as it is.</p>
      {urls.map((url, index) => (
        <fieldset key={url.id}>
          <legend>
            Headers of <span class="id">{url.url}</span>
          </legend>
          {url.headers.map(({ name }) => removal(headerAt(index, name), `Remove ${name}`))}
          <TextArea
            label="Headers to set"
            value={lines[index]!}
            change={(text) => setLines(lines.map((each, at) => (at === index ? text : each)))}
            hint={headerHint}
          />
        </fieldset>
      ))}
      <fieldset>
        <legend>Login</legend>
        {destination.clientCert && removal('clientCert', 'Remove the client certificate and its key')}
        {destination.ca && removal('ca', 'Remove the own CA')}
        {destination.oauthClientSecret && removal('oauthClientSecret', 'Remove the OAuth2 client secret')}
        {destination.templateSecrets.map(({ name }) =>
          removal(templateSecret(name), `Remove the secret ${name} of templates`),
        )}
        <LoginFields typed={typed} change={(edit) => setTyped({ ...typed, ...edit })} failure={null} />
      </fieldset>
    </ActionDialog>
  )
}

const templateSecret = (name: string): string => `secret ${name}`

const headerAt = (url: number, name: string): string => `header ${url} ${name}`
