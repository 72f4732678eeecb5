import type { Kafka } from 'kafkajs'
import type { Permission } from '../../core/permissions.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import { explainKafkaError } from './explain-kafka-error.ts'
import { describeKafkaError } from './kafka-error.ts'
import { loginBehind } from './secure/kafka-login.ts'

/** Why a reader of Kafka makes no progress: for readiness, for the log, and for a start that must fail. */
export class KafkaTrouble {
  readonly #kafka: Kafka
  readonly #needs: readonly Permission[]
  #reason: string | null = null

  /** @param needs what the brokers must allow */
  constructor(kafka: Kafka, needs: readonly Permission[]) {
    this.#kafka = kafka
    this.#needs = needs
  }

  /** The last trouble, in one line; null before the first one. */
  get reason(): string | null {
    return this.#reason
  }

  /**
   * What ends a start, or null where trying again may help. After the start everything is tried again: a permission that
   * was taken away may come back, and what waits for it must not be lost. The reason is then looked for beside that.
   * @param report is given the reason, once it is known
   */
  async judge(
    error: unknown,
    isStarting: boolean,
    report: (reason: string) => void,
  ): Promise<PostriderError | null> {
    this.#reason = describeKafkaError(error, loginBehind(this.#kafka), this.#needs).message
    const explaining = explainKafkaError(error, this.#kafka, this.#needs).then((found) => {
      const isFinal = found instanceof PostriderError && !found.canRetry
      if (isFinal) this.#reason = found.message
      report(this.#reason ?? messageOf(found))
      return isFinal ? found : null
    })
    return isStarting ? explaining : null
  }
}
