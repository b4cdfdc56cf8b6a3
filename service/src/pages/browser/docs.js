/** The script of the documentation copies code. Every page is complete without it. */
const seconds = 2

if ('clipboard' in navigator) for (const button of document.querySelectorAll('[data-copy]')) button.hidden = false

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]')
  if (button !== null) void copy(button)
})

async function copy(button) {
  const text = button.parentElement.querySelector('pre').textContent.trimEnd()
  button.textContent = await navigator.clipboard.writeText(text).then(
    () => 'Copied',
    () => 'Not copied',
  )
  setTimeout(() => (button.textContent = 'Copy'), seconds * 1000)
}
