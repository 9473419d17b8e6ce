import { type Figures, measure } from './load.ts'
import { gateway, LABEL } from './targets.ts'

/** What durability costs: jobs that are answered 201 from stable storage, against jobs that are waited for. */
export async function accepting(
  ports: readonly number[],
  bounds: { readonly count: number; readonly seconds: number },
): Promise<string> {
  const settings = { preflight: { default: 'off', zpl: 'off' }, limits: { queue: 1_000_000 } }
  const rig = await gateway('gateway', ports, settings)
  const content = LABEL.toString('base64')
  const post = async (index: number, wait: boolean) => {
    const { statusCode, body } = await rig.pool.request({
      method: 'POST',
      path: `/api/v1/print/tcp_127-0-0-1_${ports[index % ports.length]}`,
      headers: { 'content-type': 'application/json', 'x-api-key': rig.key },
      body: JSON.stringify({ content, contentType: 'raw_base64', wait }),
    })
    const text = await body.text()
    if (statusCode !== (wait ? 200 : 201)) throw new Error(`answered ${statusCode}: ${text.slice(0, 200)}`)
  }
  try {
    const run = (wait: boolean): Promise<Figures> =>
      measure({ ...bounds, concurrency: 64, once: (index) => post(index, wait) })
    await run(true)
    const waited = await run(true)
    const accepted = await run(false)
    const line = ({ perSecond, p50, p99 }: Figures) =>
      `${perSecond.toFixed(0)} a second, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
    return [
      `### What durability costs, ${ports.length} printers, 64 clients`,
      '',
      `- waited for, nothing on disk: ${line(waited)}`,
      `- accepted (201), job and document on stable storage: ${line(accepted)}; ratio ${(accepted.perSecond / waited.perSecond).toFixed(2)}`,
      '',
    ].join('\n')
  } finally {
    await rig.stop()
  }
}
