/** A request that its sender may repeat under one key. Both are digests without a `/`. */
export interface RequestKey {
  /** Of the key, and of what it is for. */
  key: string
  /** Of what was asked. */
  request: string
}

/** A command's id in the settings log: unique, and followed by its request's key where it has one. */
export function commandIdOf(unique: string, request: RequestKey | null): string {
  return request === null ? unique : `${unique}/${request.key}/${request.request}`
}

export function requestKeyOf(commandId: string): RequestKey | null {
  const [, key, request, ...rest] = commandId.split('/')
  return key && request && rest.length === 0 ? { key, request } : null
}
