/**
 * What the holder of a token may do, the least first; each includes those before it. `reader`: sees everything but
 * the contents of calls. `operator`: sees those too, sends tests and replays. `admin`: changes settings and tokens,
 * and deletes.
 */
export const roles = ['reader', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]

export const includesRole = (held: Role, needed: Role): boolean =>
  roles.indexOf(held) >= roles.indexOf(needed)
