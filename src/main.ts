#!/usr/bin/env node
import './exit-on-old-node.ts'
import './thread-pool.ts'
import { CommanderError } from 'commander'
import { failWith, guardProcess } from './cli/fail.ts'
import { program } from './cli/program.ts'

async function main(): Promise<void> {
  guardProcess()
  const args = process.argv.slice(2)
  try {
    await (await program(args)).parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
    else failWith(error)
  }
}

await main()
