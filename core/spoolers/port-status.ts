import type { Condition, Report } from '../driver/index.ts'
import type { PortStatus } from '../links/usb-class.ts'
import type { Session } from './spooler.ts'

/**
 * A session whose printer is asked by the printer class as well, where its driver learns nothing. `asks`: the driver has
 * questions of its own, whose silence must not be taken for readiness: then only what is wrong is told.
 */
export function withPortStatus(
  session: Session,
  { asks, status }: { readonly asks: boolean; readonly status: () => Promise<PortStatus | null> },
): Session {
  return {
    ...session,
    async probe(why) {
      const report = await session.probe(why)
      if (report) return report
      const port = reportOf(await status())
      return port && (port.conditions.length > 0 || !asks) ? port : null
    },
  }
}

/** Paper is told reliably; "not selected" and "error" are not by all devices, and are worth saying, no more. */
function reportOf(port: PortStatus | null): Report | null {
  if (!port) return null
  const conditions: Condition[] = []
  if (port.paperEmpty) conditions.push({ reason: 'media-empty', severity: 'error' })
  else if (port.fault) conditions.push({ reason: 'other', severity: 'warning', effect: 'none' })
  if (!port.selected) conditions.push({ reason: 'offline', severity: 'warning', effect: 'none' })
  return { conditions }
}
