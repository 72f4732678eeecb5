import { AsyncLocalStorage } from 'node:async_hooks'

const actors = new AsyncLocalStorage<string>()

/**
 * Whatever changes the settings during this work has this actor in their history, however deep down it is done: one that
 * would have to be handed on could be forgotten.
 */
export const actingAs = <T>(actor: string, work: () => T): T => actors.run(actor, work)

export const currentActor = (): string | undefined => actors.getStore()
