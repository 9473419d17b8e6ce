/** Rows under a heading, columns as wide as they need to be. Control characters, which a device may have sent, are left out. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [heading, ...rows].map((row) => row.map((cell) => cell.replace(/\p{Cc}/gu, ' ')))
  const widths = heading.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
