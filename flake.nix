{
  description = "Measures a Linux network path, says what limits it, and verifies every change";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      package =
        pkgs:
        pkgs.rustPlatform.buildRustPackage {
          pname = "linerate";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "--package=linerate-cli" ];
          # The tests need root, network namespaces and a browser: `make test` in a clone.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            $out/bin/linerate man --dir pages
            installManPage pages/*.1
            for shell in bash zsh fish; do
              $out/bin/linerate completions $shell > linerate.$shell
              installShellCompletion --cmd linerate --$shell linerate.$shell
            done
          '';
          meta = {
            inherit (manifest) description;
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "linerate";
            platforms = systems;
          };
        };
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = package nixpkgs.legacyPackages.${system};
      });
    };
}
