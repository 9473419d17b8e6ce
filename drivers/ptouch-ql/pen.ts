import { grayscale, type PDFFont, type PDFPage, rgb } from 'pdf-lib'
import type { Typeface } from './text.ts'

export const BLACK = grayscale(0)
export const RED = rgb(1, 0, 0)

export interface Fonts {
  readonly regular: PDFFont
  readonly bold: PDFFont
  readonly face: Typeface
  readonly boldFace: Typeface
}

/** Draws in dots, from the top left as one reads. */
export interface Pen {
  box(x: number, y: number, width: number, height: number, color?: ReturnType<typeof grayscale | typeof rgb>): void
  text(text: string, x: number, baseline: number, sizeDots: number, isBold?: boolean): void
  arrow(tip: readonly [number, number], left: readonly [number, number], right: readonly [number, number]): void
  circle(x: number, y: number, radius: number, stroke: number): void
}

/** A pen on a page so many dots high. */
export function pen(page: PDFPage, heightDots: number, { regular, bold }: Fonts): Pen {
  const up = (y: number) => heightDots - y
  return {
    box: (x, y, width, height, color = BLACK) => page.drawRectangle({ x, y: up(y + height), width, height, color }),
    text: (text, x, baseline, size, isBold = false) =>
      page.drawText(text, { x, y: up(baseline), size, font: isBold ? bold : regular, color: BLACK }),
    arrow: (...points) => {
      const [first, ...rest] = points.map(([x, y]) => `${x} ${y}`)
      page.drawSvgPath(`M ${first} L ${rest.join(' L ')} Z`, { x: 0, y: heightDots, color: BLACK })
    },
    circle: (x, y, radius, stroke) =>
      page.drawCircle({ x, y: up(y), size: radius - stroke / 2, borderWidth: stroke, borderColor: BLACK }),
  }
}
