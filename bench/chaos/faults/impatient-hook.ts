/** Loaded with `node --import`: the process ends at SIGHUP, and where its start would wait for a lock of the database. */
process.on('SIGHUP', () => process.exit(129))
const write = process.stdout.write.bind(process.stdout)
process.stdout.write = ((text: string, ...rest: []) => {
  if (text.includes('a writer holds the events')) process.exit(1)
  return write(text, ...rest)
}) as typeof process.stdout.write
