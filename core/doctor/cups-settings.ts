/** A directive of CUPS that decides what becomes of jobs. */
export interface SafeSetting {
  readonly file: 'cupsd.conf' | 'cups-files.conf'
  readonly name: string
  /** What CUPS does where it is not written. */
  readonly usual: string
  isSafe(value: string): boolean
  /** What may happen with an unsafe value. */
  risk(value: string): string
  /** The value that is safe. */
  readonly write: string
  /** Why that matters to the gateway; empty: the risk says it. */
  readonly why: string
  /** Jobs are lost or not known of; else it is good to know. */
  readonly matters: boolean
}

const isOn = (value: string) => /^(yes|on|true)$/i.test(value)
const isOff = (value: string) => /^(no|off|false|0)$/i.test(value)

// cupsd.conf(5) and cups-files.conf(5) of CUPS 2.4: names, meanings and what holds where they are not written.
export const SAFE_SETTINGS: readonly SafeSetting[] = [
  {
    file: 'cupsd.conf',
    name: 'DirtyCleanInterval',
    usual: '30',
    isSafe: (value) => Number(value) === 0,
    risk: (value) => `a crash loses the jobs of the last ${value} s`,
    write: '0',
    why: 'Without it the gateway prints again what had certainly not begun, and fails the rest.',
    matters: true,
  },
  {
    file: 'cupsd.conf',
    name: 'PreserveJobHistory',
    usual: 'Yes',
    isSafe: (value) => !isOff(value),
    risk: () => 'a job that has ended is forgotten at once',
    write: 'Yes',
    why: 'Without it the gateway cannot ask how a job ended, and calls it lost.',
    matters: true,
  },
  {
    file: 'cupsd.conf',
    name: 'JobKillDelay',
    usual: '30',
    isSafe: (value) => Number(value) <= 5,
    risk: (value) => `a canceled job may hold its printer for ${value} s more`,
    write: '5',
    why: '',
    matters: false,
  },
  {
    file: 'cupsd.conf',
    name: 'MaxJobs',
    usual: '500',
    isSafe: (value) => Number(value) === 0,
    risk: (value) => `with ${value} jobs in all queues CUPS takes no more, and it forgets ended ones for new ones`,
    write: '0',
    why: '',
    matters: false,
  },
  {
    file: 'cups-files.conf',
    name: 'SyncOnClose',
    usual: 'No',
    isSafe: isOn,
    risk: () => 'a power cut may lose what a crash would not',
    write: 'Yes',
    why: '',
    matters: false,
  },
]
