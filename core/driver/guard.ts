import { fail, GatewayError } from '../errors.ts'
import { LinkError } from '../links/link.ts'
import { type AnswerOf, type Asked, answerProblem } from './answers.ts'
import type { AnyDriver, Later } from './driver.ts'

/** A driver answers at once or, isolated, soon; its io has limits of its own, which are shorter. */
export const DRIVER_DEADLINE_MS = 30_000

/**
 * Asks a driver. One that throws, gives no answer within the deadline or answers nonsense fails with DRIVER_FAILED and
 * its name. An answer given at once is returned at once, without a promise or a timer. That a link broke is not the
 * driver's fault: such errors pass.
 */
export function guard<A extends Asked>(
  driver: AnyDriver,
  asked: A,
  ask: () => Later<AnswerOf[A]>,
  deadlineMs = DRIVER_DEADLINE_MS,
): Later<AnswerOf[A]> {
  let answer: Later<AnswerOf[A]>
  try {
    answer = ask()
  } catch (error) {
    throw blame(driver, asked, error)
  }
  return isPromise(answer) ? inTime(driver, asked, answer, deadlineMs) : judged(driver, asked, answer)
}

const isPromise = <R>(answer: Later<R>): answer is Promise<R> =>
  typeof (answer as { then?: unknown } | null | undefined)?.then === 'function'

function judged<A extends Asked>(driver: AnyDriver, asked: A, answer: AnswerOf[A]): AnswerOf[A] {
  const problem = answerProblem(driver, asked, answer)
  if (problem !== null) throw fail('DRIVER_FAILED', [driver.id, `${asked} ${problem}.`])
  return answer
}

async function inTime<A extends Asked>(
  driver: AnyDriver,
  asked: A,
  answer: Promise<AnswerOf[A]>,
  deadlineMs: number,
): Promise<AnswerOf[A]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(fail('DRIVER_FAILED', [driver.id, `${asked} gave no answer within ${deadlineMs} ms.`])),
      deadlineMs,
    )
  })
  try {
    return judged(driver, asked, await Promise.race([answer, late]))
  } catch (error) {
    throw blame(driver, asked, error)
  } finally {
    clearTimeout(timer)
  }
}

function blame(driver: AnyDriver, asked: Asked, error: unknown): unknown {
  if (error instanceof GatewayError || error instanceof LinkError) return error
  const words = error instanceof Error ? error.message : String(error)
  return fail('DRIVER_FAILED', [driver.id, `${asked} threw: ${words}`], {}, error)
}
