/** The word that was probably meant: at most a third of its letters differ. Case does not matter; null when none is near. */
export function nearest(word: string, words: readonly string[]): string | null {
  const wanted = word.toLowerCase().slice(0, 64)
  let best: string | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of words) {
    const changes = distance(wanted, candidate.toLowerCase())
    const bearable = Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 3))
    if (changes <= bearable && changes < fewest) [best, fewest] = [candidate, changes]
  }
  return best
}

/** Letters to insert, drop, replace or swap with their neighbour. */
function distance(a: string, b: string): number {
  let twoBack: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let changes = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        changes = Math.min(changes, twoBack[j - 2]! + 1)
      row.push(changes)
    }
    twoBack = above
    above = row
  }
  return above[b.length]!
}
