import { brokenIn, type Said } from './holds.ts'

// A process that opens what power cuts left, since a store that is damaged may end its process. Told `{ folder, said }`,
// it tells `{ broken }`.
process.on('message', ({ folder, said }: { folder: string; said: Said[] }) => {
  void look(folder, said)
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')

async function look(folder: string, said: readonly Said[]): Promise<void> {
  const broken = await brokenIn(folder, said).catch((error: Error) => [`it does not open: ${error.message}`])
  process.send!({ broken })
}
