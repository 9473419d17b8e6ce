/** What a process did to the files of one folder, and what it said meanwhile. Paths are relative to the folder. */
export type Deed =
  | { readonly kind: 'folder' | 'file' | 'remove' | 'sync'; readonly path: string }
  | { readonly kind: 'rename'; readonly path: string; readonly to: string }
  | { readonly kind: 'resize'; readonly path: string; readonly bytes: number }
  /** `through`: on stable storage when it ends (O_DSYNC). */
  | {
      readonly kind: 'write'
      readonly path: string
      readonly at: number
      readonly data: Buffer
      readonly through: boolean
    }
  | { readonly kind: 'said'; readonly text: string }

/** Calls of several threads overlap: a sync covers what had ended before it began. */
export type Moment = { readonly begins: number; readonly deed: Deed } | { readonly ends: number }

/** The system calls that are recorded: all that change files, and those that would go past this record. */
export const CALLS = [
  'openat,open,creat,lseek,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,unlink',
  'unlinkat,rmdir,truncate,ftruncate,fallocate,mkdir,mkdirat,mmap,link,linkat,copy_file_range,sendfile,io_uring_setup',
].join(',')

/** Lines of the traced process that begin with this are what it said. */
export const SAYS = '@'

/** Files of the folder that are no part of what is kept, and are written through memory. */
const PASSING = /(^|\/)(lock\.mdb|gateway\.lock)$/

const LINE = /^(\d+) +(.*)$/
const CALL = /^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)/
const UNFINISHED = ' <unfinished ...>'
const RESUMED = /^<\.\.\. \w+ resumed>/
const STRING = /"((?:\\x[0-9a-f]{2})*)"/g
const DESCRIPTOR = /^(\d+)<((?:\\x[0-9a-f]{2})*)/

interface Call {
  readonly name: string
  readonly args: string
  readonly result: number
  readonly begins: number
  readonly ends: number
}

/** Reads what `strace -f -y -xx` has written. Throws when files were changed in a way that it does not show. */
export function readTrace(trace: string, root: string): Moment[] {
  const moments: { readonly line: number; readonly moment: Moment }[] = []
  const calls = [...callsOf(trace)].sort((a, b) => a.begins - b.begins)
  const deedOf = createReader(root)
  for (const [number, call] of calls.entries()) {
    const deed = call.result >= 0 ? deedOf(call) : null
    if (!deed) continue
    moments.push({ line: call.begins, moment: { begins: number, deed } })
    moments.push({ line: call.ends, moment: { ends: number } })
  }
  return moments.sort((a, b) => a.line - b.line).map(({ moment }) => moment)
}

/** Whole calls, those that another thread interrupted too. */
function* callsOf(trace: string): Generator<Call> {
  const begun = new Map<string, { line: number; text: string }>()
  let line = 0
  for (const whole of trace.split('\n')) {
    line += 2
    const [, thread, text] = LINE.exec(whole) ?? []
    if (thread === undefined || text === undefined) continue
    if (text.endsWith(UNFINISHED)) {
      begun.set(thread, { line, text: text.slice(0, -UNFINISHED.length) })
      continue
    }
    const resumed = RESUMED.exec(text)
    const start = resumed ? begun.get(thread) : undefined
    if (resumed && !start) continue
    const [, name, args, result] = CALL.exec(start ? start.text + text.slice(resumed![0].length) : text) ?? []
    if (name === undefined || args === undefined) continue
    yield { name, args, result: Number(result), begins: start?.line ?? line, ends: line + 1 }
  }
}

function createReader(root: string): (call: Call) => Deed | null {
  const handles = new Map<string, { through: boolean; at: number }>()
  const known = new Set<string>()
  const inside = (path: string) => {
    if (path !== root && !path.startsWith(`${root}/`)) return null
    return PASSING.test(path) ? null : path.slice(root.length + 1)
  }
  const handleOf = (fd: string, path: string) => {
    const handle = handles.get(`${fd} ${path}`) ?? { through: false, at: 0 }
    handles.set(`${fd} ${path}`, handle)
    return handle
  }

  return ({ name, args, result }) => {
    const descriptor = DESCRIPTOR.exec(args)
    const fd = descriptor?.[1] ?? ''
    const strings = () => [...args.matchAll(STRING)].map(([, hex]) => bytesOf(hex!))
    if (/^(mkdir|rename|unlink|rmdir|open|creat|truncate|link)/.test(name)) {
      const [path, to] = strings().map((bytes) => inside(bytes.toString()))
      if (path === null || path === undefined) return null
      if (name.startsWith('mkdir')) return { kind: 'folder', path }
      if (name.startsWith('unlink') || name === 'rmdir') {
        known.delete(path)
        return { kind: 'remove', path }
      }
      if (name.startsWith('rename') && typeof to === 'string') {
        known.delete(path)
        known.add(to)
        return { kind: 'rename', path, to }
      }
      if (!name.startsWith('open')) throw new Error(`${name} of ${path} is not understood`)
      handles.set(`${result} ${path}`, { through: /O_D?SYNC/.test(args), at: 0 })
      if (!/O_CREAT/.test(args) || known.has(path)) return null
      known.add(path)
      return { kind: 'file', path }
    }
    const path = descriptor ? inside(bytesOf(descriptor[2]!).toString()) : null
    const last = Number(/(\d+)$/.exec(args)?.[1])
    if (name === 'mmap') return refuseWrites(args, inside)
    if (name === 'io_uring_setup') throw new Error('Writes by io_uring are not seen.')
    if (name.includes('write') && fd === '1' && path === null) {
      const [text] = strings().map(String)
      return text?.startsWith(SAYS) ? { kind: 'said', text: text.slice(SAYS.length) } : null
    }
    if (path === null) return null
    const handle = handleOf(fd, path)
    switch (name) {
      case 'lseek':
        handle.at = result
        return null
      case 'fsync':
      case 'fdatasync':
        return { kind: 'sync', path }
      case 'ftruncate':
        return { kind: 'resize', path, bytes: last }
      case 'write':
      case 'writev':
      case 'pwrite64':
      case 'pwritev': {
        const data = Buffer.concat(strings()).subarray(0, result)
        const at = name.startsWith('p') ? last : handle.at
        if (!name.startsWith('p')) handle.at += result
        return { kind: 'write', path, at, data, through: handle.through }
      }
      default:
        throw new Error(`${name} of ${path} is not understood`)
    }
  }
}

/** What is written through a mapping never comes by here. */
function refuseWrites(args: string, inside: (path: string) => string | null): null {
  const mapped = /<((?:\\x[0-9a-f]{2})+)/.exec(args)
  const path = mapped ? inside(bytesOf(mapped[1]!).toString()) : null
  if (path !== null && /PROT_WRITE/.test(args) && /MAP_SHARED/.test(args))
    throw new Error(`${path} is written through memory`)
  return null
}

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll('\\x', ''), 'hex')
