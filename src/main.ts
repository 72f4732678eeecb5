#!/usr/bin/env node
import './exit-on-old-node.ts'
import './thread-pool.ts'
import { guardProcess } from './cli/fail.ts'
import { processIo } from './cli/process-io.ts'
import { runProgram } from './cli/program.ts'

guardProcess()
await runProgram(process.argv.slice(2), processIo)
