import { access } from './access.ts'
import { calls } from './calls.ts'
import { edges } from './edges.ts'
import { guards } from './guards.ts'
import { isolation } from './isolation.ts'
import { keeping } from './keeping.ts'
import { login } from './login.ts'
import type { Mutation } from '../../scripts/mutations/mutation.ts'
import { operators } from './operators.ts'
import { plans } from './plans.ts'
import { requests } from './requests.ts'
import { retries } from './retries.ts'
import { security } from './security.ts'
import { settings } from './settings.ts'

/** In the order of the promises in test/README.md. */
export const mutations: readonly Mutation[] = [
  ...calls,
  ...edges,
  ...requests,
  ...login,
  ...retries,
  ...isolation,
  ...keeping,
  ...settings,
  ...plans,
  ...guards,
  ...security,
  ...access,
  ...operators,
]
