import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { roles } from '../core/access/roles.ts'
import type { AccessToken } from '../core/access/tokens.ts'
import type { SettingKind } from './setting-kind.ts'

/** By which scanners for leaked secrets can find it. */
const prefix = 'postrider_'

/** 32 random bytes: nobody guesses it. */
export const newToken = (): string => prefix + randomBytes(32).toString('base64url')

/** Whether it may be one that `newToken` made. */
export const isTokenForm = (text: string): boolean => /^postrider_[\w-]{43}$/.test(text)

/** What is kept of a token (AccessToken.hash). */
export const hashOfToken = (token: string): string => createHash('sha256').update(token).digest('base64url')

/** A token as it is shown: neither itself nor its hash. */
const tokenSchema = z
  .object({
    id: z.string().describe('Its name: the actor of what is done with it.'),
    role: z.enum(roles),
    createdAt: z.iso.datetime(),
    revokedAt: z.iso.datetime().nullable().describe('Null while it works.'),
  })
  .meta({ id: 'Token' })

export type TokenView = z.output<typeof tokenSchema>

export const tokenView = ({ id, role, createdAt, revokedAt }: AccessToken): TokenView => ({
  id,
  role,
  createdAt: new Date(createdAt).toISOString(),
  revokedAt: revokedAt === null ? null : new Date(revokedAt).toISOString(),
})

export const tokenKind = {
  one: 'token',
  schema: tokenSchema,
  all: ({ tokens }) => tokens,
  view: tokenView,
} as const satisfies SettingKind<AccessToken, TokenView>
