/** The script of the documentation copies code. Every page is complete without it. */
const seconds = 2

if ('clipboard' in navigator) for (const button of document.querySelectorAll('[data-copy]')) button.hidden = false

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]')
  if (button !== null) void copy(button)
})

async function copy(button) {
  await navigator.clipboard.writeText(button.parentElement.querySelector('pre').textContent.trimEnd())
  button.textContent = 'Copied'
  setTimeout(() => (button.textContent = 'Copy'), seconds * 1000)
}
