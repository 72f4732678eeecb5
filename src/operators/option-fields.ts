import { z } from 'zod'
import { destinationOptions, optionsShape, type OptionName } from '../core/settings/destination-options.ts'
import type { OptionRows } from '../core/settings/option-rows.ts'
import { sourceOptions, sourceOptionsShape, type SourceOptionName } from '../core/settings/source-options.ts'
import { fieldsOf, type Field } from './fields.ts'

/** An option as the page's forms show it. */
export type OptionField<N extends string = string> = Pick<
  Field,
  'type' | 'choices' | 'isNullable' | 'isLong' | 'text' | 'fallback'
> & { name: N; label: string }

export interface OptionFields {
  destination: readonly OptionField<OptionName>[]
  source: readonly OptionField<SourceOptionName>[]
}

/** What the page is bundled with, in the order of the forms. */
export const optionFields = (): OptionFields => ({
  destination: fieldsFor<OptionName>(destinationOptions, optionsShape),
  source: fieldsFor<SourceOptionName>(sourceOptions, sourceOptionsShape),
})

const fieldsFor = <N extends string>(rows: OptionRows, shape: Record<N, z.ZodType>): OptionField<N>[] =>
  fieldsOf({ body: z.object(shape) }).map(({ name, type, choices, isNullable, isLong, text }) => ({
    ...{ name: name as N, type, choices, isNullable, isLong, text },
    label: rows[name]!.label,
    fallback: rows[name]!.fallback,
  }))
