/** @jsxImportSource @hono/hono/jsx */
import type { ProjectVisit } from "../guard.tsx";

/** Returns the path of a user's page. */
export function addressOf({ here }: Pick<ProjectVisit, "here">, user: string): string {
  return here(`/users/one?user=${encodeURIComponent(user)}`);
}

/** Returns the path of the page that erases a user. */
export function eraseAddressOf({ here }: Pick<ProjectVisit, "here">, user: string): string {
  return here(`/users/erase?user=${encodeURIComponent(user)}`);
}

/** A user's id, as a link to their page. */
export function UserLink({ visit, user }: { visit: Pick<ProjectVisit, "here">; user: string }) {
  return (
    <a href={addressOf(visit, user)}>
      <bdi>{user}</bdi>
    </a>
  );
}
