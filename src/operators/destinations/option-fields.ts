import { z } from 'zod'
import { destinationOptions, optionsShape, type OptionName } from '../../core/settings/destination-options.ts'
import { fieldsOf, type Field } from '../fields.ts'

/** An option of a destination as the page's form shows it. */
export type OptionField = Pick<Field, 'type' | 'choices' | 'isNullable' | 'isLong' | 'text'> & {
  name: OptionName
  label: string
}

/** What the page is bundled with, in the order of the form. */
export const optionFields = (): OptionField[] =>
  fieldsOf({ body: z.object(optionsShape) }).map(({ name, type, choices, isNullable, isLong, text }) => ({
    ...{ name: name as OptionName, type, choices, isNullable, isLong, text },
    label: destinationOptions[name as OptionName].label,
  }))
