// Imported before anything else. Look-ups of host names run on libuv's threads, four unless told, and on half of them at
// most: as many names whose DNS does not answer would hold up every other new connection (adapters/webhook/name-lookup.ts).
process.env.UV_THREADPOOL_SIZE ??= '32'

export {}
