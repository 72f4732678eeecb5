import { z } from 'zod'

/** One thing that can be chosen for a destination or a source. */
export interface Option<S extends z.ZodType> {
  /** As events of any version have it. */
  schema: S
  /** As it may be asked for, where that has bounds: they may be others in another version. */
  asked: z.ZodType<z.output<S>>
  fallback: z.output<S>
  /** What people call it. */
  label: string
  /** In the admin API's document, in help and in the page's form. */
  hint: string
}

export const option = <S extends z.ZodType>(
  schema: S,
  fallback: z.output<S>,
  label: string,
  hint: string,
  asked: z.ZodType<z.output<S>> = schema as z.ZodType<z.output<S>>,
): Option<S> => ({ schema, asked, fallback, label, hint })

export type OptionRows = Record<string, Option<z.ZodType>>

/** A value for each row. */
export type OptionValues<R extends OptionRows> = { [K in keyof R]: z.output<R[K]['schema']> }

/** A change of options: what is undefined stays as it is. */
export type OptionsEditOf<R extends OptionRows> = { [K in keyof R]?: OptionValues<R>[K] | undefined }

/** What the log, the admin API and the rules make of rows. */
export function optionSet<R extends OptionRows>(rows: R) {
  const names = Object.keys(rows) as (keyof R & string)[]
  const each = <T>(of: (row: R[keyof R & string]) => T) =>
    Object.fromEntries(names.map((name) => [name, of(rows[name]!)])) as Record<keyof R & string, T>
  const given = (edit: OptionsEditOf<R>): OptionsEditOf<R> =>
    Object.fromEntries(
      names.filter((name) => edit[name] !== undefined).map((name) => [name, edit[name]]),
    ) as OptionsEditOf<R>
  const schemas = each(({ schema }) => schema) as { [K in keyof R & string]: R[K]['schema'] }
  return {
    names,
    defaults: each(({ fallback }) => fallback) as OptionValues<R>,
    /** Of options as an event carries them. */
    ofEvent: z.object(schemas).partial(),
    /** Of options as the admin API shows them, and takes them. */
    shape: each(({ asked, hint }) => asked.describe(hint)) as {
      [K in keyof R & string]: z.ZodType<OptionValues<R>[K]>
    },
    /** What an edit changes, without what it leaves alone. */
    given,
    edited: <T extends OptionValues<R>>(current: T, edit: OptionsEditOf<R>): T => ({
      ...current,
      ...given(edit),
    }),
  }
}
