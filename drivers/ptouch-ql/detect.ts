import type { DetectionRule } from '../../core/driver/index.ts'
import { MODELS } from './models.ts'

const BYTES = ['tcp', 'usb', 'serial', 'lpd', 'cups']
const EDITOR_LITE =
  'it is in Editor Lite mode and plays a disk: hold its Editor Lite button until the green lamp beside it goes out, then plug it in again'
const HEAD_112 = 'its head of 112 pins is not known well enough to print without waste'

// Captured IEEE 1284 ids (MFG:Brother;CMD:PT-CBP;MDL:QL-1100) and USB ids, in printer and in mass-storage mode.
export const DETECTION: readonly DetectionRule[] = [
  {
    when: { usbVendor: '04f9', usbProduct: MODELS.map(({ editorLite }) => editorLite).filter(Boolean) },
    strength: 'exact',
    refuse: EDITOR_LITE,
  },
  { when: { model: ['QL-*', 'PT-*'], usbVendor: '04f9', usbClasses: '08/*' }, strength: 'exact', refuse: EDITOR_LITE },
  { when: { usbVendor: '04f9', usbProduct: ['2004', '2019'] }, strength: 'exact', refuse: HEAD_112 },
  {
    when: { scheme: BYTES, model: ['PT-2300*', 'PT-1950*', 'Brother PT-2300*', 'Brother PT-1950*'] },
    strength: 'exact',
    refuse: HEAD_112,
  },
  { when: { scheme: BYTES, commandSet: '*PT-CBP*' }, strength: 'exact' },
  {
    when: { scheme: BYTES, make: 'Brother*', model: ['QL-*', 'PT-*', 'Brother QL-*', 'Brother PT-*'] },
    strength: 'exact',
  },
  {
    when: { usbVendor: '04f9', usbProduct: MODELS.map(({ usbProduct }) => usbProduct).filter(Boolean) },
    strength: 'exact',
  },
  { when: { scheme: BYTES, model: ['Brother QL-*', 'Brother PT-*'] }, strength: 'exact' },
  { when: { scheme: BYTES, model: ['QL-*', 'PT-*'] }, strength: 'family' },
  { when: { scheme: BYTES, description: ['Brother QL-*', 'Brother PT-*'] }, strength: 'family' },
]
