/** The title and the icon of the tab show how many things need a person. */

const ICON = 'data:image/svg+xml,';

export function showAttention(count: number, title: string): void {
  document.title = `${count > 0 ? `(${count}) ` : ''}${title === '' ? '' : `${title} · `}Towline`;
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const address = count > 0 ? ICON + encodeURIComponent(badge(count)) : '/assets/favicon.svg';
  if (link && link.getAttribute('href') !== address) link.href = address;
}

function badge(count: number): string {
  const text = count > 9 ? '9+' : String(count);
  return (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#b45309"/>' +
    `<text x="16" y="23" font-family="sans-serif" font-weight="700" font-size="${text.length > 1 ? 17 : 21}" fill="#fff" text-anchor="middle">${text}</text></svg>`
  );
}
