import { edges } from './edges.ts'
import { intake } from './intake.ts'
import { isolation } from './isolation.ts'
import { keeping } from './keeping.ts'
import type { Mutation } from './mutation.ts'
import { requests } from './requests.ts'
import { retries } from './retries.ts'
import { security } from './security.ts'
import { settings } from './settings.ts'

/** In the order of the README's promises. */
export const mutations: readonly Mutation[] = [
  ...intake,
  ...edges,
  ...requests,
  ...retries,
  ...isolation,
  ...keeping,
  ...settings,
  ...security,
]
