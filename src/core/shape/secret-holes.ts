import type { Fillable, Filled } from './text-template.ts'

/** As a hole writes it, and so that it stands in JSON, forms and URLs as it is. */
const namePattern = '[A-Za-z_][A-Za-z0-9_]{0,63}'
const wholeName = new RegExp(`^${namePattern}$`)
const wholeHole = new RegExp(`^secret\\.(${namePattern})$`)

export const isSecretName = (name: string): boolean => wholeName.test(name)

/** The secret that a hole stands for, by the hole's text; null: it stands for a value of the call. */
export const secretIn = (hole: string): string | null => wholeHole.exec(hole)?.[1] ?? null

export const secretHole = (name: string): string => `secret.${name}`

/**
 * Noncharacters around what stands for a secret in a body, so that nothing else is taken for it: what a call holds of them is
 * replaced before. The last one closes in a form what is JSON within a field.
 */
const [opening, closing, closingInField] = ['\ufdd0', '\ufdd1', '\ufdd2'] as const

/** What stands for a secret until a request goes out; people can read it. */
export const marked = (name: string): string => `${opening}\${${secretHole(name)}}${closing}`

export const withoutMarks = (text: string): string => text.replace(/[\ufdd0-\ufdd2]/g, '\ufffd')

/** The same of JSON, which may escape them. */
export const jsonWithoutMarks = (json: string): string =>
  json.replace(/[\ufdd0-\ufdd2]|\\(?:ufdd[0-2]|[^])/gi, (found) => (found.length === 2 ? found : '\ufffd'))

/** JSON that is to be the text of a form's field. */
export const markedInField = (json: string): string => json.replaceAll(closing, closingInField)

const inJson = new RegExp(`${opening}\\$\\{secret\\.(${namePattern})\\}${closing}`, 'g')
const inForm = new RegExp(`%EF%B7%90%24%7Bsecret\\.(${namePattern})%7D%EF%B7%9([12])`, 'g')
/** JSON that names a secret has a text, and no form begins so: URLSearchParams encodes these. */
const isJson = (body: string): boolean => /^[{["]/.test(body)

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
const asField = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)

/** The body with its secrets, written as where they stand wants it. One that is not given stays as it is. */
export function bodyWithSecrets(body: string, secrets: ReadonlyMap<string, string>): string {
  if (isJson(body))
    return body.replace(inJson, (mark, name: string) => {
      const secret = secrets.get(name)
      return secret === undefined ? mark : escaped(secret)
    })
  return body.replace(inForm, (mark, name: string, end: string) => {
    const secret = secrets.get(name)
    if (secret === undefined) return mark
    return asField(end === '2' ? escaped(secret) : secret)
  })
}

/** The body for people: `${secret.NAME}` in place of its marks. */
export const bodyForPeople = (body: string): string =>
  body.replace(isJson(body) ? inJson : inForm, (_, name: string) => `\${${secretHole(name)}}`)

/** The names of the secrets in a delivery's body. */
export function secretsOf(filled: Filled | null | undefined): string[] {
  if (!filled) return []
  return filled.flatMap(({ hole }) => secretIn(hole) ?? [])
}

/** The first one of them that is not given. */
export const missingSecret = (filled: Filled | null, names: ReadonlySet<string>): string | null =>
  secretsOf(filled).find((name) => !names.has(name)) ?? null

/** The template of a URL or a header with its secrets, or with something for them. */
export function withSecretsIn({ parts }: Fillable, textOf: (name: string) => string): Fillable {
  const filled: Fillable['parts'][number][] = []
  for (const part of parts) {
    const name = typeof part === 'string' ? null : secretIn(part.text)
    const next = name === null ? part : textOf(name)
    const last = filled.at(-1)
    if (typeof next === 'string' && typeof last === 'string') filled[filled.length - 1] = last + next
    else filled.push(next)
  }
  return { parts: filled }
}
