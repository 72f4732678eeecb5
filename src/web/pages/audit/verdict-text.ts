import type { VerdictAnswer } from '../../api/routes.ts'
import { countOf } from '../../components/figures.ts'

export function verdictText({ ok, faults, destinations }: VerdictAnswer): string {
  if (ok) return 'Every call is accounted for'
  const unbalanced = destinations.filter(({ balance }) => balance !== 0).length
  const parts = [
    faults.length > 0 && countOf(faults.length, 'fault'),
    unbalanced > 0 && `${countOf(unbalanced, 'destination')} out of balance`,
  ]
  return `Not every call is accounted for: ${parts.filter(Boolean).join(', ')}`
}
