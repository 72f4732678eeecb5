// Imported before anything else. Look-ups of host names run on libuv's threads, four unless told: as many names whose
// DNS does not answer would hold up new connections to every other endpoint.
process.env.UV_THREADPOOL_SIZE ??= '32'

export {}
