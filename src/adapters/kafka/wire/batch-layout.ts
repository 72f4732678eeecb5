/**
 * Where the fields of a record batch stand (Kafka protocol, RecordBatch, magic 2). Its length counts from behind itself.
 */
export const lengthAt = 8
export const magicAt = 16
export const attributesAt = 21
export const lastOffsetDeltaAt = 23
export const firstTimestampAt = 27
export const maxTimestampAt = 35
export const producerIdAt = 43
export const countAt = 57
export const headBytes = 61
export const behindLength = 12
export const magic = 2
/** Of the attributes. */
export const codecBits = 0b111
export const appendTime = 0b1000
export const transactional = 0b10000
export const control = 0b100000
