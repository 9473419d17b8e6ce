import t from 'tap'
import { labIsMissing, runLab } from './lab.ts'

const missing = labIsMissing(['avahi-daemon', 'dbus-daemon', 'ippeveprinter'])
if (missing && process.env.REQUIRE_COMPONENTS === '1') t.fail(missing)

const skip = missing ?? false

t.test(
  'where there is no IPv4, printers are found and printed on, also by the addresses of one link alone',
  { skip, timeout: 180_000 },
  async (t) => {
    const { routed, linkLocal, labels, pages } = await runLab('ipv6')
    t.match(routed, {
      printers: [
        { path: 'ipp_fd00-77--2_8631', uri: 'ipp://[fd00:77::2]:8631/ipp/print', driver: 'ipp-pdf', status: 'idle' },
        { path: 'https_fd00-77--2_8631', uri: 'ipps://[fd00:77::2]:8631/ipp/print' },
        { path: 'tcp_fd00-77--2_9100', uri: 'tcp://[fd00:77::2]:9100', localAddress: 'fd00:77::2', driver: 'zpl' },
      ],
      outcomes: ['completed', 'completed'],
    })
    t.match(
      linkLocal,
      {
        printers: [
          { path: 'ipp_fd00-77--2_8631', uri: /^ipp:\/\/\[fe80::[0-9a-f:]+%25va\]:8631\/ipp\/print$/, status: 'idle' },
          { path: 'https_fd00-77--2_8631', uri: /^ipps:\/\/\[fe80::[0-9a-f:]+%25va\]:8631\/ipp\/print$/ },
          {
            path: 'tcp_fd00-77--2_9100',
            uri: /^tcp:\/\/\[fe80::[0-9a-f:]+%25va\]:9100$/,
            localAddress: /^fe80::.*%va$/,
          },
        ],
        outcomes: ['completed', 'completed'],
      },
      'they have moved, and keep their paths',
    )
    t.match(labels, [' to fd00:77::2', / to fe80::/])
    t.equal(pages, 2)
  },
)
