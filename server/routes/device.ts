import { said } from '../envelope.ts'
import type { Api, RouteOptions } from './api.ts'

export async function deviceRoutes(api: Api, { gateway }: RouteOptions): Promise<void> {
  api.get('/discover', { config: { scopes: ['manage'], does: 'search for printers' } }, async () => {
    await gateway.discover()
    return said('Successfully discovered printers.', null)
  })

  api.get('/discover/last', { config: { scopes: ['manage'], does: 'see how a search went' } }, async (request) =>
    said('Successfully obtained the last search.', gateway.lastSearch(request.caller)),
  )

  api.get('/status', { config: { scopes: ['read'], does: 'see the status of the device' } }, async () =>
    said('Successfully obtained device status.', await gateway.status()),
  )

  api.get('/drivers', { config: { scopes: ['read'], does: 'see drivers' } }, async () =>
    said('Successfully obtained drivers.', gateway.drivers()),
  )
}
