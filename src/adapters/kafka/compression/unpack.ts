import { gunzip } from './gzip.ts'
import { unlz4 } from './lz4.ts'
import { UnpackError } from './output.ts'
import { unsnappy } from './snappy.ts'
import { unzstd } from './zstd.ts'

/** Of one batch, unpacked. Brokers take batches of a few MB, and what grows beyond this is no batch of calls. */
export const maxUnpackedBytes = 64 * 1024 * 1024

type Unpack = (bytes: Buffer, maxBytes: number) => Buffer | Promise<Buffer>

/** By their numbers in the attributes of a batch. */
const codecs: Readonly<Record<number, { name: string; unpack: Unpack }>> = {
  1: { name: 'gzip', unpack: gunzip },
  2: { name: 'Snappy', unpack: unsnappy },
  3: { name: 'LZ4', unpack: unlz4 },
  4: { name: 'Zstandard', unpack: unzstd },
}

/** Resolves once what is being unpacked in this process is done, for one at a time: each may take `maxUnpackedBytes`. */
let turn: Promise<unknown> = Promise.resolve()

/**
 * Whatever Kafka's Java clients have compressed, in any form that they read. None of it takes a native module: strangers'
 * bytes are read by Node and by checked JavaScript.
 *
 * @throws UnpackError where the bytes are corrupt or unpack to more than `maxBytes`. That depends on the bytes alone, so
 *   that every reader of a topic sees the same.
 */
export function unpack(codec: number, bytes: Buffer, maxBytes = maxUnpackedBytes): Promise<Buffer> {
  const unpacked = turn.then(() => unpackNow(codec, bytes, maxBytes))
  turn = unpacked.catch(() => {})
  return unpacked
}

async function unpackNow(codec: number, bytes: Buffer, maxBytes: number): Promise<Buffer> {
  const known = codecs[codec]
  if (!known) throw new UnpackError(`it is compressed with codec ${codec}, which does not exist`)
  try {
    return await known.unpack(bytes, maxBytes)
  } catch (error) {
    if (error instanceof UnpackError) throw new UnpackError(`${known.name}: ${error.message}`)
    throw error
  }
}
