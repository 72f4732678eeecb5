import { hash } from 'node:crypto'

/** In lowercase hex, of the text's UTF-8. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex')
