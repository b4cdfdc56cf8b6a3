// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AssetRegistry} from "../src/AssetRegistry.sol";
import {IAssetRegistry} from "../src/IAssetRegistry.sol";
import {World} from "./World.sol";

/// Wallets and other readers find ERC-165, a locked ERC-721, documents, and roles.
contract StandardsTest is World {
    function test_listsItsInterfaces() public view {
        bytes4[12] memory ids = [
            bytes4(0x01ffc9a7), // ERC-165
            bytes4(0x80ac58cd), // ERC-721
            bytes4(0x5b5e139f), // ERC-721 Metadata
            bytes4(0x49064906), // ERC-4906
            bytes4(0xb45a3c0e), // ERC-5192
            bytes4(0xe8a3d485), // ERC-7572
            bytes4(0x84b0196e), // ERC-5267
            bytes4(0x7965db0b), // AccessControl
            bytes4(0xeac8f5b8), // getAsset(uint256)
            bytes4(0x6c6458f1), // getAssets(uint256[])
            bytes4(keccak256("getAssetsWithMetadata(uint256[])")),
            bytes4(keccak256("getAssetByTag(bytes32)"))
        ];
        for (uint256 i = 0; i < ids.length; ++i) require(registry.supportsInterface(ids[i]), "listed");
        require(!registry.supportsInterface(0xffffffff), "never (ERC-165)");
        require(!registry.supportsInterface(0x780e9d63), "not enumerable");
    }

    function testFuzz_nothingMovesByErc721(address from, address to, uint256 id, bool yes, bytes calldata data) public {
        uint256 tokenId = tokenIn(4);
        uint256 word = wordOf(tokenId);
        bytes memory reason = abi.encodeWithSelector(IAssetRegistry.TransfersLocked.selector);
        uint256[2] memory ids = [tokenId, id];
        for (uint256 i = 0; i < 2; ++i) {
            fails(owner, abi.encodeCall(registry.approve, (to, ids[i])), reason);
            fails(owner, abi.encodeCall(registry.setApprovalForAll, (to, yes)), reason);
            fails(owner, abi.encodeCall(registry.transferFrom, (from, to, ids[i])), reason);
            fails(
                owner,
                abi.encodeWithSignature("safeTransferFrom(address,address,uint256)", owner, to, ids[i]),
                reason
            );
            fails(
                owner,
                abi.encodeWithSignature("safeTransferFrom(address,address,uint256,bytes)", owner, to, ids[i], data),
                reason
            );
        }
        require(wordOf(tokenId) == word && !registry.isApprovedForAll(owner, to), "unmoved");
        require(registry.locked(tokenId) && registry.getApproved(tokenId) == address(0), "locked");
    }

    function testFuzz_unmintedIdsAreRefusedByErc721Reads(uint256 id) public {
        bytes memory reason = because(IAssetRegistry.AssetNotFound.selector, id);
        fails(stranger, abi.encodeCall(registry.ownerOf, (id)), reason);
        fails(stranger, abi.encodeCall(registry.tokenURI, (id)), reason);
        fails(stranger, abi.encodeCall(registry.locked, (id)), reason);
        fails(stranger, abi.encodeCall(registry.getApproved, (id)), reason);
        fails(
            stranger,
            abi.encodeCall(registry.balanceOf, (address(0))),
            abi.encodeWithSelector(IAssetRegistry.ZeroAddress.selector)
        );
    }

    function test_documents() public {
        uint256 tokenId = mint();
        same(registry.name(), "Asset Registry");
        same(registry.symbol(), "ASSET");
        same(registry.tokenURI(tokenId), "https://example.org/asset/1");
        same(registry.contractURI(), "https://example.org/registry");
        does(admin, abi.encodeCall(registry.setTokenBaseURI, ("https://example.net/")));
        does(admin, abi.encodeCall(registry.setContractURI, ("https://example.net/all")));
        same(registry.tokenURI(tokenId), "https://example.net/1");
        same(registry.contractURI(), "https://example.net/all");
        does(admin, abi.encodeCall(registry.setTokenBaseURI, ("")));
        same(registry.tokenURI(tokenId), "");
        fails(issuer, abi.encodeCall(registry.setTokenBaseURI, ("x")), lacks(issuer, 0));
        fails(issuer, abi.encodeCall(registry.setContractURI, ("x")), lacks(issuer, 0));
    }

    function test_signingDomain() public view {
        (, string memory name, string memory version, uint256 chain, address verifier,,) = registry.eip712Domain();
        same(name, "AssetRegistry");
        same(version, "1");
        require(chain == block.chainid && verifier == address(registry), "chain and address");
    }

    function test_rolesAreGivenAtDeployment() public {
        address[6] memory holders = [issuer, binder, qa, attester, guardian, recycler];
        bytes32[6] memory roles = [
            registry.ISSUER_ROLE(),
            registry.BINDER_ROLE(),
            registry.QA_ROLE(),
            registry.ATTESTER_ROLE(),
            registry.GUARDIAN_ROLE(),
            registry.RECYCLER_ROLE()
        ];
        for (uint256 i = 0; i < roles.length; ++i) {
            for (uint256 j = 0; j < holders.length; ++j) {
                require(registry.hasRole(roles[i], holders[j]) == (i == j), "one role each");
            }
            require(!registry.hasRole(roles[i], admin) && registry.getRoleAdmin(roles[i]) == 0, "the admin names them");
            fails(holders[i], abi.encodeCall(registry.grantRole, (roles[i], stranger)), lacks(holders[i], 0));
        }
        require(registry.hasRole(0, admin), "the admin");
    }

    function test_emptyRolesStayEmpty() public {
        address none = address(0);
        registry = deployed(AssetRegistry.Holders(admin, none, none, none, none, none, none), "", "");
        require(!registry.hasRole(registry.ISSUER_ROLE(), none), "no role for the zero address");
        try new AssetRegistry(AssetRegistry.Holders(none, issuer, none, none, none, none, none), "", "") {
            revert("needs an admin");
        } catch (bytes memory reason) {
            bytes4 expected = bytes4(keccak256("AccessControlInvalidDefaultAdmin(address)"));
            require(bytes4(reason) == expected, "for want of an admin");
        }
    }

    function same(string memory found, string memory expected) private pure {
        require(keccak256(bytes(found)) == keccak256(bytes(expected)), expected);
    }
}
