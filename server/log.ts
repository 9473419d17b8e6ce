import { type DestinationStream, type Logger, pino } from 'pino'

/** The log of the gateway: one JSON line an event, on standard error, keys and credentials left out. */
export function createLog(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: [
        'req.headers["x-api-key"]',
        'headers["x-api-key"]',
        '*.headers["x-api-key"]',
        'authorization',
        '*.authorization',
      ],
      censor: '[left out]',
    },
  }
  return pino(options, destination ?? pino.destination(2))
}
